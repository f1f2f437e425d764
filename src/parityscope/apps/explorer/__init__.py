"""The explorer: watch heads find the hidden bits, in a browser."""

from parityscope.core.errors import naming_the_extra

with naming_the_extra():
    import fastapi  # noqa: F401
    import plotly  # noqa: F401
    import uvicorn  # noqa: F401
    import websockets  # noqa: F401
