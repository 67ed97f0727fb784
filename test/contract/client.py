"""Imports every module of the generated client, then executes a workflow, waits for it, and fires its webhook."""

import importlib
import pkgutil
import sys
from uuid import UUID

folder, url, token, team, workflow = sys.argv[1:]
sys.path.insert(0, folder)

import perdure_client  # noqa: E402

modules = [found.name for found in pkgutil.walk_packages(perdure_client.__path__, "perdure_client.")]
for name in modules:
    importlib.import_module(name)

from perdure_client import AuthenticatedClient  # noqa: E402
from perdure_client.api.executions import read_execution  # noqa: E402
from perdure_client.api.webhooks import fire_webhook_by_post  # noqa: E402
from perdure_client.api.workflows import execute_workflow  # noqa: E402
from perdure_client.models.execute_workflow_body import ExecuteWorkflowBody  # noqa: E402

client = AuthenticatedClient(base_url=url, token=token)
body = ExecuteWorkflowBody.from_dict({"teamId": team, "data": {"body": {"n": 1}}})
ended = execute_workflow.sync(id=UUID(workflow), client=client, body=body, wait_ms=60000)
assert ended.status == "SUCCESS", ended
read = read_execution.sync(id=ended.execution_id, client=client)
assert read.output_data.to_dict() == {"sum": 2}, read
fired = fire_webhook_by_post.sync_detailed(workflow_id=UUID(workflow), path="in", client=client, body={"n": 1})
assert fired.status_code == 200 and b'{"sum":2}' in fired.content, fired
print(f"{len(modules)} modules import, and three calls work")
