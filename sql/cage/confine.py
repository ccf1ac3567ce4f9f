"""Confine the calling process permanently: it reads some paths, writes nothing, starts nothing and has no network.

Linux has both parts, without a dependency: Landlock limits files and TCP, and a filter of system calls what
Landlock does not cover: other sockets, other processes, attributes of files. Threads that already run are not covered,
so confine a process before it imports what starts threads. Elsewhere only the limits of resources remain.
"""

import ctypes
import errno
import os
import platform
import resource
import struct
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on all architectures
_ABI_VERSION = 1  # flag of _CREATE_RULESET
_PATH_BENEATH = 1
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
# How many kinds of access to files each version of Landlock can refuse; later versions have as many as the last.
_FILE_ACCESSES = (13, 14, 15, 15, 16)
_TCP_SINCE, _SCOPES_SINCE = 4, 6
_ALL_TCP, _ALL_SCOPES = 0b11, 0b11

_SET_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2  # of prctl
_CAPABILITIES_VERSION, _MAY_READ_ANY_FILE = 0x20080522, 1 << 2
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # instructions of BPF
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000  # the last with an errno in its lower half
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_ARGUMENT_AT = 0, 4, 16  # in struct seccomp_data, little-endian
_X32 = 0x40000000  # numbers of another table of x86-64
_CLONE_THREAD = 0x10000
_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_NONE = -1
# Numbers on x86-64 and aarch64; include/uapi/asm-generic/unistd.h and syscall_64.tbl of Linux.
_REFUSED_CALLS = {
    # sockets, and rings that bypass this filter
    "socket": (41, 198), "socketpair": (53, 199), "connect": (42, 203), "io_uring_setup": (425, 425),
    # programs and processes; threads are made by clone
    "execve": (59, 221), "execveat": (322, 281), "fork": (57, _NONE), "vfork": (58, _NONE),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kill": (62, 129),
    "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424), "pidfd_getfd": (438, 438), "perf_event_open": (298, 241), "bpf": (321, 280),
    "userfaultfd": (323, 282), "setpgid": (109, 154), "setpriority": (141, 140), "ioprio_set": (251, 30),
    "sched_setparam": (142, 118), "sched_setscheduler": (144, 119), "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    # attributes of files; what happens to files of others
    "ioctl": (16, 29), "file_setattr": (469, 469), "inotify_init": (253, _NONE), "inotify_init1": (294, 26),
    "chmod": (90, _NONE), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, _NONE),
    "fchown": (93, 55), "lchown": (94, _NONE), "fchownat": (260, 54), "utime": (132, _NONE), "utimes": (235, _NONE),
    "futimesat": (261, _NONE), "utimensat": (280, 88), "setxattr": (188, 5), "lsetxattr": (189, 6),
    "fsetxattr": (190, 7), "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "setxattrat": (463, 463), "removexattrat": (466, 466), "open_by_handle_at": (304, 265),
    # the machine: mounts, namespaces, keys, modules, clock, memory that processes share
    "mount": (165, 40), "umount2": (166, 39), "unshare": (272, 97), "setns": (308, 268), "pivot_root": (155, 41),
    "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "mount_setattr": (442, 442), "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "init_module": (175, 105), "finit_module": (313, 273), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225), "sethostname": (170, 161),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "syslog": (103, 116), "sync": (162, 81),
    "shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "msgget": (68, 186), "msgsnd": (69, 189),
    "msgrcv": (70, 188), "msgctl": (71, 187), "semget": (64, 190), "semop": (65, 193), "semctl": (66, 191),
    "semtimedop": (220, 192), "mq_open": (240, 180), "mq_unlink": (241, 181),
}  # fmt: skip
_CLONE, _CLONE3, _TGKILL, _PRLIMIT = (56, 220), (435, 435), (234, 131), (302, 261)
_MMAP, _FCNTL = (9, 222), (72, 25)
_SHARED_OR_GROWING = 0x101  # flags of mmap, whose memory no limit counts
_SIGNAL_OTHERS = (8, 10, 15)  # commands of fcntl: F_SETOWN, F_SETSIG, F_SETOWN_EX


def confine(readable: Iterable[Path], memory_bytes: int) -> None:
    """Confine this process: it may read the files and folders `readable`, and allocate `memory_bytes`.

    Where the kernel lacks a part, the others still hold; `missing_parts` names it.
    """
    for kind, limit in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_DATA, memory_bytes)):
        try:
            resource.setrlimit(kind, (limit, limit))
        except (OSError, ValueError):  # macOS refuses some limits
            continue
    if sys.platform != "linux":
        return
    _prctl(_SET_NO_NEW_PRIVILEGES, 1, 0)
    _drop_capabilities()
    if abi := landlock_version():
        _restrict_files(readable, abi)
    if has_syscall_filter():  # in this thread and in those that it starts
        program = _syscall_filter(os.getpid(), *_ARCHITECTURES[platform.machine()])
        buffer = ctypes.create_string_buffer(program, len(program))
        header = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
        _prctl(_SET_SECCOMP, _FILTER, ctypes.c_char_p(header))


def missing_parts() -> list[str]:
    """Return what this machine lacks to confine a process completely."""
    parts = {"Landlock": landlock_version() > 0, "a filter of system calls": has_syscall_filter()}
    return [name for name, is_there in parts.items() if not is_there]


def landlock_version() -> int:
    """Return the version of Landlock's interface, 0 where there is none."""
    if sys.platform != "linux":
        return 0
    version = _libc().syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_ABI_VERSION))
    return max(int(version), 0)


def has_syscall_filter() -> bool:
    """Return whether this kernel filters system calls and the numbers of this architecture are listed."""
    is_known = sys.platform == "linux" and platform.machine() in _ARCHITECTURES
    return is_known and Path("/proc/sys/kernel/seccomp").is_dir()


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, second: object, third: object) -> None:
    arguments = [ctypes.c_ulong(each) if isinstance(each, int) else each for each in (second, third, 0, 0)]
    _checked(_libc().prctl(option, *arguments))


def _drop_capabilities() -> None:
    """Drop the capabilities of root, except reading files of other users."""
    header, sets = struct.pack("=Ii", _CAPABILITIES_VERSION, 0), ctypes.create_string_buffer(24)
    _checked(_libc().capget(header, sets))
    capabilities = struct.unpack("=6I", sets.raw)[1] & _MAY_READ_ANY_FILE  # of the permitted ones
    _checked(_libc().capset(header, struct.pack("=6I", capabilities, capabilities, 0, 0, 0, 0)))


def _checked(result: int) -> int:
    """Return the result of a system call; raises OSError if it is negative."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _restrict_files(readable: Iterable[Path], abi: int) -> None:
    """Refuse access to files except reading `readable`; where Landlock can, also TCP, abstract sockets and signals."""
    libc = _libc()
    accesses = (1 << _FILE_ACCESSES[min(abi, len(_FILE_ACCESSES)) - 1]) - 1
    attributes = struct.pack("=Q", accesses)
    if abi >= _TCP_SINCE:
        attributes += struct.pack("=Q", _ALL_TCP)
    if abi >= _SCOPES_SINCE:
        attributes += struct.pack("=Q", _ALL_SCOPES)
    rules = _checked(libc.syscall(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0)))
    try:
        for path in readable:
            try:
                opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.EACCES, errno.ENOTDIR):
                    raise
                continue
            try:
                allowed = _READ_FILE | _READ_DIR if path.is_dir() else _READ_FILE
                rule = struct.pack("=Qi", allowed, opened)
                _checked(libc.syscall(_ADD_RULE, rules, ctypes.c_int(_PATH_BENEATH), rule, ctypes.c_uint32(0)))
            finally:
                os.close(opened)
        _checked(libc.syscall(_RESTRICT_SELF, rules, ctypes.c_uint32(0)))
    finally:
        os.close(rules)


def _syscall_filter(pid: int, architecture: int, column: int) -> bytes:
    """Return the filter of system calls, in BPF; it allows what it does not refuse: each system needs other calls.

    `pid` is this process, and `column` that of the architecture in _REFUSED_CALLS.
    """
    lines = [(_LOAD, 0, 0, _ARCHITECTURE_AT), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _KILL)]
    lines += [(_LOAD, 0, 0, _NUMBER_AT), (_AT_LEAST, 0, 1, _X32), _refuse(errno.EPERM)]
    for name, numbers in _REFUSED_CALLS.items():
        if numbers[column] != _NONE:
            # Python asks with ioctl whether a file is a terminal.
            lines += [(_EQUAL, 0, 1, numbers[column]), _refuse(errno.ENOTTY if name == "ioctl" else errno.EPERM)]
    # The C library falls back to clone, whose flags can be read here.
    lines += [(_EQUAL, 0, 1, _CLONE3[column]), _refuse(errno.ENOSYS)]
    lines += _if_argument(0, _CLONE[column], _ANY_BIT, _CLONE_THREAD)
    lines += _if_argument(0, _TGKILL[column], _EQUAL, pid)  # abort() and threads signal their own process
    lines += _if_argument(0, _PRLIMIT[column], _EQUAL, 0)
    lines += _if_argument(3, _MMAP[column], _ANY_BIT, _SHARED_OR_GROWING, is_refused=True)
    for command in _SIGNAL_OTHERS:
        lines += _if_argument(1, _FCNTL[column], _EQUAL, command, is_refused=True)
    lines.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def _refuse(number: int) -> tuple[int, int, int, int]:
    return (_RETURN, 0, 0, _REFUSE | number)


def _if_argument(
    index: int, number: int, test: int, value: int, *, is_refused: bool = False
) -> Iterator[tuple[int, int, int, int]]:
    """Allow a call only if an argument passes a test (`is_refused`: only if not), then load the call's number again."""
    yield (_EQUAL, 0, 4, number)
    yield (_LOAD, 0, 0, _FIRST_ARGUMENT_AT + 8 * index)
    yield (test, 0, 1, value) if is_refused else (test, 1, 0, value)
    yield _refuse(errno.EPERM)
    yield (_LOAD, 0, 0, _NUMBER_AT)
