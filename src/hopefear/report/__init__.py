"""Reports: tables and plots in one HTML file without dependencies."""

from hopefear.report.arcs import ArcDiagram, text_tree
from hopefear.report.comparison import ModelComparison
from hopefear.report.error_examples import ErrorExample, ErrorExamples, Judgement, disagreements
from hopefear.report.evaluation import Evaluation, Findings
from hopefear.report.examples import BracketedText, ChangedText, MarkedText, Rival, WeighedText
from hopefear.report.page import Page
from hopefear.report.plot import Plot
from hopefear.report.runs import Run, load_run, run_report

__all__ = [
    "ArcDiagram",
    "BracketedText",
    "ChangedText",
    "ErrorExample",
    "ErrorExamples",
    "Evaluation",
    "Findings",
    "Judgement",
    "MarkedText",
    "ModelComparison",
    "Page",
    "Plot",
    "Rival",
    "Run",
    "WeighedText",
    "disagreements",
    "load_run",
    "run_report",
    "text_tree",
]
