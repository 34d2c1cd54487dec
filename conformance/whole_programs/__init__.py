"""Random programs (sources of modules) that run as they are and accelerated, and are compared.

::

    python -m conformance.whole_programs --examples N [--seed S] [--mode run|accelerate|both]
                                         [--jit background|cached|eager|recorded|all] [--whole] [--types]
    python -m conformance.whole_programs --together [--scene language] --examples N [--seed S]

Program ``k`` of a run is generated from the seed ``S + k``.  `prelude` is the beginning of every program;
`statements` writes random statements on arrays, `scenes` and the modules ``*_scenes`` the functions, classes
and loops around them, `writer` a whole program; `language_scenes` has a grammar instead.  `running` runs a
program in all ways, `together` many of them in one process, `reducing` removes superfluous statements, and
`cases` has programs that were written by hand.
"""
