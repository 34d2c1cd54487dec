"""A stand-in for compiled code: sites are served by running their source in Python."""

import ast
from functools import partial
from typing import Any

import pytest

from dcarray.jit.loops.entry.names import ENDED, RETURNED
from dcarray.jit.loops.sites.site import Site
from dcarray.jit.loops.sites.site_server import SiteServer
from dcarray.jit.loops.syntax.loop_exits import is_kept, lowered_loop


class Oracle:
    """Serves sites by running their source with the values that they are given and no others.

    Parameters
    ----------
    monkeypatch : pytest.MonkeyPatch
    every : int
        One call of a site in so many is served.

    Attributes
    ----------
    served, resumed : int
        How often; of these, how often a loop that had begun.
    missing : list of str
        Errors since a name was not given.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, every: int = 1) -> None:
        self.served = self.resumed = self._calls = 0
        self.missing: list[str] = []
        self._every, self._done = every, False
        monkeypatch.setattr(Site, "ask", lambda site, *values: self._serve(site, values, None, False))
        monkeypatch.setattr(Site, "asking", lambda site, step: partial(getattr(self, step), site))
        monkeypatch.setattr(Site, "done", lambda site: self._is_done())
        monkeypatch.setattr(Site, "leave", lambda site: None)

    def enter(self, site: Site, *values: Any) -> Any:
        return self._serve(site, values, None, False)

    def resume(self, site: Site, start: Any, items: Any, *values: Any) -> Any:
        found = self._serve(site, values, start, True)
        self._done = bool(found)
        self.resumed += self._done
        return found

    def _is_done(self) -> bool:
        done, self._done = self._done, False
        return done

    def _serve(self, site: Site, values: tuple[Any, ...], start: Any, resumed: bool) -> Any:
        self._calls += 1
        if self._calls % self._every:
            return ()
        source = site.source
        scope: dict[str, Any] = {n: site.names[n] for n in source.others if n in site.names}
        scope |= dict(zip(source.needed, values, strict=True))
        tree = ast.parse(source.source)
        first, last = tree.body[0], tree.body[-1]
        try:
            if isinstance(first, ast.For):
                items = eval(ast.unparse(first.iter), scope)
                scope["items"] = items = items[items.index(start) :] if resumed else items
                first.iter = ast.Name("items", ast.Load())
                if not items:
                    return ()
            if ENDED in source.live:
                assert isinstance(first, ast.For | ast.While)
                tree.body, _ = lowered_loop(first, ENDED, True)
            elif isinstance(last, ast.Return):
                assert last.value is not None
                tree.body[-1] = ast.Assign([ast.Name(RETURNED, ast.Store())], last.value)
            exec(compile(ast.fix_missing_locations(tree), source.file, "exec"), scope)
        except NameError as error:
            self.missing.append(f"{error} in {source}")
            return ()
        except Exception:
            return ()
        self.served += 1
        live = (*source.live, *[RETURNED] * source.returns)
        due = scope.get(ENDED, 0) > 0  # what only a return reads may not be bound
        return (tuple([scope.get(name) if due or is_kept(name) else scope[name] for name in live]),)


def serve_some_resumes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have servers of sites resume a loop at the third of every four requests, and Python go on at others."""
    asked: list[Any] = []
    resume = SiteServer.resume

    def third(server: SiteServer, *given: Any) -> None:
        asked.append(given)
        if len(asked) % 4 == 3:
            resume(server, *given)

    monkeypatch.setattr(SiteServer, "resume", third)
