"""Models behind HTTP: requests in JSON, answered in batches, and a page to try models on.

A request is read (`requests`), waits in a queue (`batcher`), is answered by the service of its
model (`registry`, `hopefear.tasks.serving`) together with others for the same model, and is
counted (`counts`). `app` is the ASGI application, `server` runs it by uvicorn.
"""
