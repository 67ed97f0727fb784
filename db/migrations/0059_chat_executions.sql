-- no transaction
-- The executions of a chat, which go with it; most executions have none.
create index concurrently if not exists executions_of_chat on executions (chat_session_id)
  where chat_session_id is not null;
