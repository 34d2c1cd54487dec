"""Passes over placed regions that remove or merge communication."""
