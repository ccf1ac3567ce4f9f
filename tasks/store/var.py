"""The former name of tasks/store/workspace.py; it goes when the last caller uses the new one."""

from tasks.store.workspace import Workspace

Var = Workspace
