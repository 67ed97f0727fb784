-- no transaction: counts and lists of a team's approvals of one status
create index concurrently if not exists pauses_status on pauses (team_id, status, created_at desc, id desc)
  include (deadline) where kind = 'APPROVAL';
