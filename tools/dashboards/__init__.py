"""`python -m tools.dashboards` writes the dashboards of deploy/observability/dashboards.

They are code so that a metric that is renamed is renamed here, and so that a test can ask every
expression of a real Prometheus. Another test builds them anew and compares.
"""
