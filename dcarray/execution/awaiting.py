"""The behaviour of a program while its plans are being made: NumPy runs calls if that is faster."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dcarray.tiering import eager_period
from dcarray.tiering.admission import GLANCE, LARGE, WAIT

if TYPE_CHECKING:
    from dcarray.plans.background import Background
    from dcarray.plans.templates import LogTemplate
    from dcarray.recording.log import Recording

MAX_AWAITED = 256


class Awaiting:
    """The decisions how calls run while requested plans are not ready.

    Attributes
    ----------
    planned : float
        The nanoseconds that NumPy would have taken for the recordings that ran by plans since the last wait.
    """

    def __init__(self, background: Background) -> None:
        self._background = background
        self.planned = self._unplanned = 0.0
        self._statements = 0  # without a plan

    def bridge(self, rec: Recording, template: LogTemplate, again: bool) -> None:
        """Decide, after a recording that ran without a plan, how calls run until the plan is ready.

        If the recording has come ``again`` since its plan was requested, the program is very likely in a loop
        whose other plans are requested, too.  Then NumPy runs all calls at once for a while, unless most run
        by plans, or are so large that recording costs little.
        """
        self._unplanned += template.cost.numpy
        self._statements += len(rec.sites)
        if not template.is_awaited:
            return
        if again and self._wait(template):
            rec.session.unalign()
        elif not again:  # it will be known before it has been recorded
            if len(rec.session.awaited) >= MAX_AWAITED:
                rec.session.awaited.clear()
            rec.session.awaited[rec.sites[0][:2]] = partial(self._wait, template)

    def _wait(self, template: LogTemplate) -> bool:
        """Begin an eager period until a plan is ready, if that is worth it; return whether it has begun."""
        large = self._unplanned > LARGE * self._statements
        if not template.is_awaited or large or self._unplanned < self.planned:
            return False
        begun = self._background.is_working
        if not eager_period.begin_wait(WAIT if begun else GLANCE):
            return False
        self.planned = self._unplanned = 0.0
        self._statements = 0
        if not begun:
            self._background.add_unplanned_work(GLANCE)
        return True
