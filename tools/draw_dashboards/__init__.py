"""`python -m tools.draw_dashboards` draws the dashboards with Grafana's own components.

A deployment runs under load for some minutes, with a few things going wrong, and a real Prometheus
watches it; then every expression of every panel is asked of it as Grafana would, and the answers
are drawn in Chromium by @grafana/ui. For people who change a dashboard, to look at it: no test and
no CI runs this.
"""
