"""Analyses of statements: the ranks that compute their points, the halos that are valid, normal forms."""
