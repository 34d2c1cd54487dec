"""The passes that every target may use, and their order."""

from dcarray.ir.passes.nested import NESTED
from dcarray.ir.passes.pipeline import Pipeline

from .collapse import COLLAPSE
from .contract import CONTRACT
from .copies import COPIES
from .copy_in import SNAPSHOTS
from .dead import DEAD
from .fuse import FUSE
from .index_set_splitting import SPLIT
from .locals import LOCALS
from .loop_distribution import ABSORB
from .partial_dead_stores import BORDERS
from .reshapes import RESHAPES
from .row_fusion import ROWS
from .scalar_replacement import SCALARS
from .siblings import SIBLINGS
from .simplify import SIMPLIFY

#: The early passes come first since whether a loop is an axis is seen when its body is as short as it gets,
#: and before what would be part of a larger matrix product has become a small one.  Fusion makes
#: contractions, and spares those that it meets.  Siblings come late, since a nest is not taken apart again;
#: copies in and partial dead stores last, when what can be fused is.
PORTABLE = Pipeline(
    early=(SIMPLIFY, COLLAPSE, COPIES, DEAD, FUSE, NESTED, ABSORB),
    passes=(
        SIMPLIFY, COLLAPSE, RESHAPES, COPIES, DEAD, FUSE, CONTRACT, SPLIT, SIBLINGS, LOCALS, SNAPSHOTS,
        BORDERS, NESTED, ABSORB,
    ),
    final=(ROWS, SCALARS),
)  # fmt: skip
