"""Running the models: what a request will cost, and whose turn it is.

Every computation with a model runs here in steps. Calls of several callers, and short and long
calls of one, take turns by the seconds that they use (decision record 0035).
"""
