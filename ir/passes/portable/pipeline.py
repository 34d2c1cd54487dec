"""The passes that every target may use, and their order."""

from dcarray.ir.passes.nested import NESTED
from dcarray.ir.passes.pass_manager import Pipeline

from .collapse import COLLAPSE
from .contract import CONTRACT
from .copies import COPIES
from .copy_in import COPY_IN
from .dead import DEAD
from .fuse import FUSE
from .index_set_splitting import INDEX_SET_SPLITTING
from .locals import LOCALS
from .loop_distribution import LOOP_DISTRIBUTION
from .loop_invariants import LOOP_INVARIANTS
from .loop_products import LOOP_PRODUCTS
from .partial_dead_stores import PARTIAL_DEAD_STORES
from .product_parts import PRODUCT_PARTS
from .reshapes import RESHAPES
from .row_fusion import ROW_FUSION
from .scalar_replacement import SCALAR_REPLACEMENT
from .siblings import SIBLINGS
from .simplify import SIMPLIFY

#: The early passes come first since whether a loop is an axis is seen when its body is as short as it gets,
#: and before what would be part of a larger matrix product has become a small one.  Fusion makes
#: contractions, and spares those that it meets.  Siblings come late, since a nest is not taken apart again;
#: copies in and partial dead stores last, when what can be fused is.
PORTABLE = Pipeline(
    early=(LOOP_PRODUCTS, SIMPLIFY, COLLAPSE, LOOP_INVARIANTS, COPIES, DEAD, FUSE, NESTED, LOOP_DISTRIBUTION),
    passes=(
        SIMPLIFY, COLLAPSE, RESHAPES, COPIES, DEAD, FUSE, CONTRACT, PRODUCT_PARTS, INDEX_SET_SPLITTING,
        SIBLINGS, LOCALS, COPY_IN, PARTIAL_DEAD_STORES, NESTED, LOOP_DISTRIBUTION,
    ),
    final=(ROW_FUSION, SCALAR_REPLACEMENT),
)  # fmt: skip
