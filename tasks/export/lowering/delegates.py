"""What a program is lowered to: the partitioners of the delegates that a case states, by priority.

A delegate is a row of `EXPORT_DELEGATES`: its partitioner, the packages that it needs, and the recipes that it does not
support. Your own partitioner is a function without parameters that returns one, or a list of them.
"""

import importlib.metadata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from devices.errors import FarmError
from tasks.bundle.delegates import (
    DEFAULT_DELEGATE,
    DELEGATES,
    PORTABLE,
    delegate_names,
    user_partitioners,
)
from tasks.export.exported import NotApplicableError
from tasks.export.lowering import apple, openvino
from tasks.export.lowering.delegation import make_partitioner
from tasks.export.recipes import Recipe
from tasks.export.user_code import load_function


@dataclass(frozen=True)
class ExportDelegate:
    make: Callable[[Recipe], Any]
    """Returns executorch's partitioner; imports what it needs."""
    packages: tuple[str, ...] = ()
    """Distributions that it needs beside executorch; their versions are part of the key and of the export."""
    extra: str | None = None
    """The farm's extra that has them."""
    modules: tuple[str, ...] = ()
    """Those of this folder that only its exports need, and only their keys count."""
    unsupported: Mapping[str, str] = field(default_factory=dict)
    """Why it cannot lower a recipe, by the recipe's name without options."""
    left: Mapping[str, str] = field(default_factory=dict)
    """Why its partitioner is set to leave operators, by their names."""
    folds_weights: bool = True
    """Whether it takes weights that are stored in int8, and not those that the program quantizes."""
    after_quantizing: Callable[[Any], None] | None = None
    """Changes the graph of a model that int8_static quantized."""
    has_dynamic_shapes: bool = True
    """Whether its runtime computes other shapes than the largest."""
    converts_types: bool = False
    """Whether it converts fp32 to the type of a recipe itself, so that the model is traced in fp32."""
    check: Callable[[], None] | None = None
    """Raises NotHereError if it cannot export on this machine."""
    prepare: Callable[[Path], None] | None = None
    """Called before the model is loaded, with an empty folder that stays until the export ends."""


EXPORT_DELEGATES: dict[str, ExportDelegate] = {
    DEFAULT_DELEGATE: ExportDelegate(lambda recipe: make_partitioner(with_bf16=recipe.float_type == "bfloat16")),
    "openvino": ExportDelegate(
        lambda _recipe: openvino.make_partitioner(),
        packages=("openvino",),
        extra="openvino",
        modules=("openvino",),
        unsupported=openvino.UNSUPPORTED,
        folds_weights=False,
        after_quantizing=openvino.adapt_quantization,
        has_dynamic_shapes=False,
        check=openvino.check_system,
        prepare=openvino.compute_in_fp32,
    ),
    "coreml": ExportDelegate(
        apple.make_coreml_partitioner,
        packages=("coremltools",),
        modules=("apple",),
        unsupported=apple.COREML_UNSUPPORTED,
        left=apple.COREML_LEFT,
        converts_types=True,
    ),
    "mlx": ExportDelegate(lambda _recipe: apple.make_mlx_partitioner(), modules=("apple",), check=apple.check_mlx),
}


@dataclass
class StatedPartitioner:
    """One partitioner of a list by priority."""

    name: str
    """Of its delegate, or the function of yours that returned it."""
    partitioner: Any
    backends: set[str] = field(default_factory=set)
    """Ids of the backends that it gave a part of a graph to, so far."""

    def __post_init__(self) -> None:
        """Note the backends of each partition that is made from here on."""
        partition = self.partitioner.partition

        def noting(program: Any) -> Any:
            result = partition(program)
            self.backends |= {spec.backend_id for spec in result.partition_tags.values()}
            return result

        self.partitioner.partition = noting


@dataclass(frozen=True)
class Lowering:
    """The delegates of a case."""

    word: str | None = None
    """As in the name of the case; None for XNNPACK."""
    functions: Mapping[str, Callable[[], Any]] = field(default_factory=dict)
    """Your own partitioners by name."""
    user_recipe: Callable[..., Any] | None = None
    """The function of your own recipe, which converts a model before it is lowered."""

    @property
    def names(self) -> tuple[str, ...]:
        return delegate_names(self.word)

    @property
    def is_for_xnnpack(self) -> bool:
        """Whether XNNPACK gets what no delegate before it takes, so that the passes that prepare for it are useful."""
        return DEFAULT_DELEGATE in self.names

    @property
    def rows(self) -> dict[str, ExportDelegate]:
        """The rows of the delegates by priority; your own partitioners have none."""
        return {name: EXPORT_DELEGATES[name] for name in self.names if name in EXPORT_DELEGATES}

    @property
    def _first(self) -> ExportDelegate | None:
        """The row of the first delegate, by which the model is converted; None without one."""
        return EXPORT_DELEGATES.get(self.names[0]) if self.names else None

    @property
    def folds_weights(self) -> bool:
        """Whether weights in int8 are stored as such; the first delegate decides."""
        return self._first is None or self._first.folds_weights

    def after_quantizing(self, graph_module: Any) -> None:
        """Change the graph of a model that int8_static quantized as the first delegate needs it."""
        if self._first and self._first.after_quantizing:
            self._first.after_quantizing(graph_module)

    def partitioners(self, recipe: Recipe) -> list[StatedPartitioner]:
        """Return new partitioners by priority; raises FarmError if your function returns something else."""
        partitioners = []
        for name in self.names:
            function = self.functions.get(name)
            content = function() if function else EXPORT_DELEGATES[name].make(recipe)
            for each in content if isinstance(content, list | tuple) else [content]:
                partitioners.append(StatedPartitioner(name, _checked(name, each)))
        return partitioners

    def check_recipe(self, recipe: Recipe) -> None:
        """Raise NotApplicableError if this machine cannot export, or if a delegate does not support a recipe.

        FarmError if a package is missing.
        """
        for name, delegate in self.rows.items():
            if delegate.check:
                delegate.check()
            _check_installed(name, delegate)
        for name, delegate in self.rows.items():
            is_first = name == self.names[0]
            # What the first one leaves of a quantized model is in fp32; one float type is that of the whole model.
            if (is_first or recipe.quantization is None) and (why := delegate.unsupported.get(recipe.name.split()[0])):
                raise NotApplicableError(f"{title(name)} does not support {recipe.name}: {why}")
            if delegate.converts_types and not is_first and recipe.float_type != "float32":
                raise NotApplicableError(
                    f"{title(name)} does not support {recipe.name} after another delegate: it converts only a model "
                    f"in fp32; state `{name}` first"
                )

    def check_shapes(self, *, is_dynamic: bool) -> None:
        """Raise NotApplicableError if a delegate would compute a model with dynamic shapes wrong."""
        fixed = [name for name, each in self.rows.items() if not each.has_dynamic_shapes]
        if is_dynamic and fixed:
            raise NotApplicableError(
                f"{title(fixed[0])} does not support dynamic shapes: its outputs keep the largest shape; export the "
                "model with fixed shapes"
            )

    def traced_recipe(self, recipe: Recipe) -> Recipe:
        """Return how a model is converted before it is lowered: to fp32 if its first delegate converts the types."""
        return replace(recipe, float_type="float32") if self._first and self._first.converts_types else recipe

    @property
    def converting(self) -> frozenset[str]:
        """Ids of the backends that convert what they take of a model in fp32 to the type of the recipe."""
        return frozenset(DELEGATES[name].backend for name, row in self.rows.items() if row.converts_types)

    @property
    def left(self) -> dict[str, str]:
        """Why the partitioners are set to leave operators, by their names."""
        return {operator: why for row in self.rows.values() for operator, why in row.left.items()}

    @property
    def backends(self) -> list[str]:
        """Ids of the backends by priority, as far as they are known before your own partitioners return."""
        return [DELEGATES[name].backend for name in self.names if name in DELEGATES]

    def check_taken(
        self,
        partitioners: list[StatedPartitioner],
        delegated: Mapping[str, Mapping[str, Any]],
        portable_nodes: Mapping[str, list[Any]],
    ) -> None:
        """Raise NotApplicableError if the first delegate of a stated list took no operator of any method.

        `delegated` has the operators in each backend by method, `portable_nodes` the others.
        """
        taken = {backend for of_method in delegated.values() for backend in of_method}
        if (
            self.word is None
            or not self.names
            or any(each.backends & taken for each in partitioners if each.name == self.names[0])
        ):
            return
        count = sum(map(len, portable_nodes.values()))
        count += sum(sum(each.values()) for of_method in delegated.values() for each in of_method.values())
        rest = "+".join(self.names[1:]) or PORTABLE
        raise NotApplicableError(
            f"no part of the graph: {title(self.names[0])} takes none of the {count} operators; the program would be "
            f"that of `{rest}`"
        )

    def prepare(self, folder: Path) -> None:
        """Prepare the libraries of the delegates in this process; `folder` is empty and stays until it ends."""
        for delegate in self.rows.values():
            if delegate.prepare:
                delegate.prepare(folder)


FOR_XNNPACK = Lowering()


def load_lowering(word: str | None, user_recipe: Callable[..., Any] | None) -> Lowering:
    """Return the delegates of a word, with your own partitioners imported; raises FarmError if one is not found."""
    return Lowering(word, {name: load_function(name) for name in user_partitioners(word)}, user_recipe)


def needed_packages(word: str | None) -> tuple[str, ...]:
    """Return the distributions that the delegates of a word need beside executorch."""
    return tuple(package for row in Lowering(word).rows.values() for package in row.packages)


def needed_modules(word: str | None) -> tuple[str, ...]:
    """Return the modules of this folder that only exports for the delegates of a word need."""
    return tuple(module for row in Lowering(word).rows.values() for module in row.modules)


def title(name: str) -> str:
    """Return the name of a delegate in sentences; your own partitioner has that of its function."""
    return DELEGATES[name].title if name in DELEGATES else name


def _check_installed(name: str, delegate: ExportDelegate) -> None:
    for package in delegate.packages:
        try:
            importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            extra = f"install the farm's extra: pip install 'etfarm[{delegate.extra}]'"
            remedy = extra if delegate.extra else f"install it: pip install {package}"
            raise FarmError(f"{package} is not installed, which {title(name)} needs to export; {remedy}") from None


def _checked(name: str, returned: Any) -> Any:
    from executorch.exir.backend.partitioner import Partitioner

    if not isinstance(returned, Partitioner):
        problem = f"{name} must return a partitioner of executorch, or a list of them"
        raise FarmError(f"{problem}, not {type(returned).__name__}")
    return returned


def xnnpack_rules(partitioners: list[StatedPartitioner]) -> set[str] | None:
    """Return the operators for which XNNPACK's partitioner has a rule; None without it."""
    rules = [set(each.partitioner.target_partitioner_configs) for each in partitioners if each.name == DEFAULT_DELEGATE]
    return rules[0] if rules else None
