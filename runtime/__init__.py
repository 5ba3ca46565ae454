"""Run an exported file on events, without torch.

``model.load("model.onnx")`` returns a ``Model``. ``model.run(x)`` and ``model.step(state, x)`` run it on arrays, and
``model.session()`` runs it on a stream of events.
"""
