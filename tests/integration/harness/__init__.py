"""What the integration tests share: hosts made of namespaces, processes with deadlines, and looks at /proc."""
