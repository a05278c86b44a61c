"""Feature templates: what to look at around a token, compiled to integer keys."""

from hopefear.features.templates.loading import BUILT_IN, load_templates, parse_templates
from hopefear.features.templates.spec import Template, Templates
from hopefear.features.templates.template_map import TemplateFeatures

__all__ = [
    "BUILT_IN",
    "Template",
    "TemplateFeatures",
    "Templates",
    "load_templates",
    "parse_templates",
]
