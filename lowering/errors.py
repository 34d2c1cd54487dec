"""The exceptions that lowering raises."""


class Unsupported(Exception):
    """Raised if a target cannot run a statement exactly; the text is the reason."""
