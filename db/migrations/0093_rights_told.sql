-- All processes learn at once, by the channel of their bus, that somebody may have lost a right, whichever process, command
-- or cascade took it away: what they read over a long time is then looked at again.
create function tell_rights() returns trigger language plpgsql as $$
begin
  perform pg_notify('processes', 'rights:' || old.user_id);
  return null;
end $$;

comment on function tell_rights is 'Tells all processes that a person, with their sessions and tokens, may have lost a right.';

create function tell_instance_rights() returns trigger language plpgsql as $$
begin
  perform pg_notify('processes', 'rights:' || old.id);
  return null;
end $$;

comment on function tell_instance_rights is 'Tells all processes that an administrator of the instance is none any more.';

create trigger members_rights after delete on members for each row execute function tell_rights();
create trigger members_role after update of role on members for each row
  when (new.role is distinct from old.role) execute function tell_rights();
create trigger sessions_rights after delete on sessions for each row
  when (old.expires_at > now()) execute function tell_rights();
create trigger sdk_tokens_rights after delete on sdk_tokens for each row
  when (old.revoked_at is null) execute function tell_rights();
create trigger sdk_tokens_ended after update of revoked_at, expires_at, role on sdk_tokens for each row
  execute function tell_rights();
create trigger users_rights after update of instance_admin on users for each row
  when (old.instance_admin and not new.instance_admin) execute function tell_instance_rights();
