"""``python -m dcarray doctor``: where a program's time goes, and what dcarray would change."""
