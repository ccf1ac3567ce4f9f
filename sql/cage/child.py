"""The program in a cage: it confines itself before it imports DuckDB, which starts threads, then answers queries."""

import sys
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec
from pathlib import Path

# DuckDB reads the limits of its control group and the processors; as root, all of /dev would be the disks.
_SYSTEM_FILES = (
    "/proc/self", "/proc/meminfo", "/proc/cpuinfo", "/sys/devices/system", "/sys/fs/cgroup", "/dev/null",
    "/dev/urandom", "/etc/localtime", "/usr/share/zoneinfo", "/etc/ld.so.cache", "/lib", "/lib64", "/usr/lib",
    "/usr/local/lib",
)  # fmt: skip
# Beyond what DuckDB counts: Python, Arrow, stacks of threads, and rows being sent.
_OTHER_MEMORY_BYTES = 2 << 30


def main() -> None:
    """Answer queries about the file of the first argument, on standard input and output.

    The second argument is the memory that a query may use.
    """
    file, memory_bytes = Path(sys.argv[1]), int(sys.argv[2])
    # DuckDB would import it, which takes half a second, to look whether a parameter is one of its values.
    sys.modules["pandas"] = None  # type: ignore[assignment]
    package = Path(__file__).parents[1]
    sys.path.insert(0, str(package.parent))
    from sql.cage.confine import confine

    # Only this process imports these, and it cannot write their bytecode once it is confined.
    for name in ("sql.cage.answers", "sql.cage.statements", "sql.warehouse"):
        spec = find_spec(name)
        if spec and isinstance(spec.loader, SourceFileLoader):
            spec.loader.get_code(name)
    sys.dont_write_bytecode = True
    del sys.path[0]
    libraries = [Path(path) / "lib" for path in {sys.prefix, sys.base_prefix}]
    readable = [*map(Path, (*_SYSTEM_FILES, *sys.path)), *libraries, package, file, Path(f"{file}.wal")]
    confine(readable, memory_bytes + _OTHER_MEMORY_BYTES)
    from sql.cage.answers import serve

    serve(file, memory_bytes)


if __name__ == "__main__":
    main()
