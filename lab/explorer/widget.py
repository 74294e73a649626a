"""The linked views as a notebook widget: the same front end as in an exported page."""

from __future__ import annotations

from typing import Any

import anywidget
import traitlets

from lab.views.page import module, widget_stylesheet


class ExplorerWidget(anywidget.AnyWidget):  # type: ignore[misc]
    """Views of one explorer, synced with Python.

    Attributes:
        data: what the views show, as `lab.explorer.payloads.payload` gives it.
        state: the selection, as `lab.explorer.selection.to_state` gives it; either side sets it.
        views: names of the views that are drawn, in order.
        bench: the state of the patch bench; only Python sets it.
    """

    _esm = module()
    _css = widget_stylesheet()

    data = traitlets.Dict().tag(sync=True)
    state = traitlets.Dict().tag(sync=True)
    views = traitlets.List(traitlets.Unicode()).tag(sync=True)
    bench = traitlets.Dict().tag(sync=True)

    def tell(self, message: dict[str, Any]) -> None:
        """Send a message to every place in which the widget is shown."""
        self.send(message)
