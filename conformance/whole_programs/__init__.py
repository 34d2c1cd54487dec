"""Random source programs, texts of modules, that are run as they are and accelerated, and compared.

::

    python -m conformance.whole_programs --examples N [--seed S] [--mode run|accelerate|both]
                                         [--jit background|cached|eager|recorded|all] [--whole] [--types]

Program ``k`` of a run is that of the number ``S + k``.  `prelude` is what every program begins with;
`statements` writes random statements on arrays, `scenes` and the modules whose names end so the functions,
classes and loops around them, `writer` a whole program.  `running` runs a program in all ways, `reducing`
drops the statements that do not matter, `cases` has programs that were written by hand.
"""
