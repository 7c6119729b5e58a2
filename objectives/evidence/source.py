"""The source of a published table: its authors, its licence, and how its file becomes the convention."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from objectives.quantities import Name

Varied = Literal["depth", "width", "ffn_ratio", "kv_dim", "query_dim", "n_experts", "top_k", "parameters", "tokens"]


class Reading(BaseModel):
    """How a published file becomes the convention.

    columns: published name to ours. where: conditions on published columns that keep a row, as `fit --where` takes
    them. derived: columns by formula, in this order, of published columns, ours and those derived before. embeddings:
    what is taken off published counts. counts: our counts made of the shapes, which the published ones without
    embeddings must equal within `tolerance` (a share), or published ones where ours are of the shapes because those are
    rounded; none where shapes are not known. group: columns that tell models which may be compared, of one recipe and
    text. best_of: columns of a sweep, of which the lowest loss of each design is taken.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    columns: dict[str, str] = {}
    where: tuple[str, ...] = ()
    derived: dict[str, str] = {}
    embeddings: str = "0"
    counts: dict[str, str] = {}
    tolerance: Annotated[float, Field(gt=0, le=0.01)] = 1e-9
    group: tuple[str, ...] = ()
    best_of: tuple[str, ...] = ()


class EvidenceSource(BaseModel):
    """A published table of trained models.

    laboratory: who trained them; all tables of one are left out together when a law is judged. file: the published file
    that `reading` reads. packaged: whether its rows are part of this package, as its licence allows. licence: as its repository states it,
    "none stated" where it does not. counted: what the published counts of parameters hold, in words.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: Name
    description: str
    laboratory: Name
    url: str
    file: str
    commit: str = ""
    licence: str
    packaged: bool
    tokenizer: str = "not stated"
    unit: Literal["nats per token", "nats per byte", "as published"] = "nats per token"
    counted: str
    varies: tuple[Varied, ...]
    fitted: tuple[Name, ...] = ()
    outside: str = ""
    remarks: tuple[str, ...] = ()
    bibtex: str
    reading: Reading
