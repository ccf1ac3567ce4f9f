"""The options `generate` of an entry in a sweep's `models`: how a language model is measured."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, Field, model_validator


class CacheOptions(BaseModel, extra="forbid", frozen=True):
    length: int | None = Field(
        default=None, ge=2, description="Capacity in tokens; default: as many as the cases need.", examples=[4096]
    )
    dtype: Literal["fp32", "fp16"] | None = Field(
        default=None,
        description="Type of its values; default: that of the recipe. Recipes of another type are skipped.",
        examples=["fp16"],
    )


class GenerateOptions(BaseModel, extra="forbid", frozen=True):
    """How a language model reads prompts and writes tokens: each prefill and each depth is a case."""

    prefill: list[Annotated[int, Field(ge=2)]] = Field(
        min_length=1,
        description="Lengths of prompts; each is a case such as pp512, which reads one into an empty cache.",
        examples=[[128, 512]],
    )
    chunks: list[Annotated[int, Field(ge=4)]] = Field(
        default=[],
        description="Lengths of prompts that are read in chunks, each as long as a prefill; the last chunk is a case.",
        examples=[[2048]],
    )
    depth: list[Annotated[int, Field(ge=0)]] = Field(
        default=[0],
        min_length=1,
        description="Tokens in the cache before tokens are written; each is a case.",
        examples=[[0, 512]],
    )
    decode: int = Field(
        default=64, ge=2, le=4096, description="Tokens that a session writes, each at the next position.", examples=[64]
    )
    cache: CacheOptions = Field(
        default=CacheOptions(), description="The KV cache, such as {length: 4096}.", examples=[{"length": 4096}]
    )
    prompt: Path | None = Field(
        default=None,
        description="A text file for the folder's tokenizer; default: seeded token ids.",
        examples=["./prompt.txt"],
    )
    text: Path | None = Field(
        default=None,
        description="A text file: the perplexity of each recipe on it is computed at the export.",
        examples=["./text.txt"],
    )

    @property
    def cache_length(self) -> int:
        """Capacity of the cache in tokens."""
        return self.cache.length or self._min_cache_length

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the longest prompt or depth, plus the one with which decoding begins."""
        return max(*self.prefill, *self.chunks, *self.depth) + 1

    @property
    def _min_cache_length(self) -> int:
        """Tokens in the cache at the end of the longest case."""
        return max(*self.prefill, *self.chunks, max(self.depth) + self.decode)

    def chunk(self, tokens: int, *, is_prompt: bool = False) -> int:
        """Return the longest prefill that divides `tokens`, to read them in equal chunks.

        `tokens` is a depth, or with `is_prompt` a prompt, which must have several chunks. Raises ValueError if none
        divides it.
        """
        fitting = [each for each in self.prefill if tokens % each == 0 and not (is_prompt and tokens == each)]
        if fitting:
            return max(fitting)
        if is_prompt:
            raise ValueError(f"a prompt of {tokens} tokens is not several times a prefill of {self.prefill}")
        raise ValueError(f"depth {tokens} is not a multiple of a prefill; use one of {self.prefill}, or add it there")

    @model_validator(mode="after")
    def _check_fits(self) -> "GenerateOptions":
        for name, values in (("prefill", self.prefill), ("chunks", self.chunks), ("depth", self.depth)):
            if len(values) != len(set(values)):
                raise ValueError(f"`{name}` lists a number twice; remove one")
        for depth in self.depth:
            self.chunk(depth)
        for prompt in self.chunks:
            self.chunk(prompt, is_prompt=True)
        if self.cache_length < self._min_cache_length:
            raise ValueError(
                f"a cache of {self.cache_length} tokens is too short; these cases need {self._min_cache_length}"
            )
        return self
