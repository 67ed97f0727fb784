-- What the import of a workflow has said about it, for as long as the workflow is there.
create table import_reports (
  workflow_id uuid primary key references workflows on delete cascade,
  report json not null,
  created_at timestamptz(3) not null default now()
);
