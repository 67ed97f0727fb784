-- OAUTH2 and GOOGLE_SERVICE_ACCOUNT: from when on the access token is renewed, and when it was last. `token` is the
-- access token of a type whose data has none, sealed with a print of the data that it was got with.
alter table credentials
  add column renew_at timestamptz,
  add column renewed_at timestamptz,
  add column token bytea,
  -- Who renews it at the moment. A renewal that failed for now leaves no renewer behind, but says why and until when
  -- nobody tries again. A renewer whose time is over has died.
  add column renewer uuid,
  add column renewer_until timestamptz,
  add column renewal_failure text;

-- Somebody has gone to an authorization server to connect a credential, and is expected back with the state of
-- `state_hash`, in the same session. `sealed` has the verifier (PKCE), and a print of the client it was begun with.
create table credential_connects (
  state_hash bytea primary key,
  credential_id uuid not null references credentials on delete cascade,
  user_id uuid not null references users on delete cascade,
  session_id uuid not null,
  sealed bytea not null,
  expires_at timestamptz not null
);
create index credential_connects_by_credential on credential_connects (credential_id);
