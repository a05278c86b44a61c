"""Models behind HTTP: questions in JSON, answered in batches, and a page to try them on.

A request is read (`questions`), waits at the desk with others (`desk`), is answered by the service
of its model (`shelf`, `hopefear.tasks.serving`) together with those that wait for the same, and is
counted (`counts`). `app` is the ASGI application, `server` what listens.
"""
