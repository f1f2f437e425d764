"""The report: one self-contained HTML file, readable offline, by mail, on a phone and in print."""

from parityscope.apps.report.page import Section, render_report

__all__ = ["Section", "render_report"]
