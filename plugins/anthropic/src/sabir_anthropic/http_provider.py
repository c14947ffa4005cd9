"""The SDK's own HTTP clients, with its timeouts and limits, that carry ready bytes; imported at the first send."""

import httpx2
from anthropic import DefaultAsyncHttpxClient, DefaultHttpxClient
from sabir.authoring.carrier import carriers

HTTPClient, AsyncHTTPClient = carriers(DefaultHttpxClient, DefaultAsyncHttpxClient, httpx2.Response)
