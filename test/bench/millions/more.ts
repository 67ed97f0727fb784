import type pg from 'pg'

/**
 * Seeds what hangs on the executions of a million: evaluations of every tenth, approvals of every twentieth, attempts of
 * those that failed, alerts with what they sent, and chats with what people said.
 */
export async function seedMore(client: pg.Client): Promise<void> {
  for (const statement of STATEMENTS) await client.query(statement)
}

const STATEMENTS = [
  `insert into evaluations (id, team_id, workflow_id, execution_id, status, provider, model, dimensions, composite,
      failure_threshold, failed, created_at, judged_at)
    select md5('evaluation ' || id)::uuid, team_id, workflow_id, id, case when h % 10 = 0 then 'FAILED' else 'SCORED' end,
      'OPENAI', 'model-1', '{accuracy,tone}', case when h % 10 > 0 then 1 + h % 5 end, 2.5, h % 10 > 0 and h % 5 < 2,
      completed_at, completed_at + interval '1 minute'
    from executions, lateral (select abs(hashtext(id::text)) as h) r where status = 'SUCCESS' and h % 10 = 3 or h % 97 = 1
      and status = 'SUCCESS'`,
  `insert into evaluation_scores (evaluation_id, dimension, score, explanation, input_tokens, output_tokens, cost)
    select id, d, composite, 'It says what was asked, and ' || repeat(md5(id::text), 4), 900, 80, 0.0012
    from evaluations, unnest(dimensions) d where composite is not null`,
  `insert into pauses (id, execution_id, team_id, workflow_id, kind, node_id, node_name, iteration, status, message, created_at,
      settled_at)
    select md5('pause ' || id)::uuid, id, team_id, workflow_id, 'APPROVAL', 'node9', 'Node 9', '',
      case when h % 60 = 0 then 'OPEN' when h % 60 < 40 then 'APPROVED' else 'REJECTED' end, 'May it go?', created_at,
      case when h % 60 > 0 then completed_at end
    from executions, lateral (select abs(hashtext(id::text)) as h) r where h % 20 = 0 and completed_at is not null`,
  `insert into node_attempts (execution_id, record_id, attempt, started_at, ended_at, error_type, error_message, counted)
    select execution_id, id, 1, started_at, completed_at, 'HTTP_STATUS', error_message, true from node_executions
    where status = 'FAILED'`,
  `insert into alerts (id, team_id, type, severity, workflow_id, metric, observed, expected, threshold, window_from, window_to,
      message, status, created_at, resolved_at, sample_execution_ids)
    select md5('alert ' || id)::uuid, team_id, 'ANOMALY', (array['LOW','MEDIUM','HIGH','CRITICAL'])[1 + h % 4], workflow_id,
      'error_rate', 0.4, 0.05, 0.1, created_at - interval '1 hour', created_at, 'More executions fail than usual', 'RESOLVED',
      created_at, created_at + interval '2 hours', array[id]
    from executions, lateral (select abs(hashtext(id::text)) as h) r where h % 100 = 7`,
  `insert into notices (id, team_id, kind, subject_id, workflow_id, alert_type, severity, title, message, created_at, done_at)
    select id, team_id, 'ALERT', id, workflow_id, type, severity, 'Errors', message, created_at, created_at from alerts`,
  `insert into notification_deliveries (id, team_id, notice_id, target, channel_id, status, attempts, created_at, settled_at)
    select md5('delivery ' || id || n)::uuid, team_id, id, 'channel ' || n, md5('channel ' || team_id || n)::uuid, 'DELIVERED', 1,
      created_at, created_at from notices, generate_series(1, 3) n`,
  `insert into notification_channels (id, team_id, name, type, recipients)
    select md5('channel ' || id || n)::uuid, id, 'Channel ' || n, 'EMAIL', '{ops@example.com}'
    from teams, generate_series(1, 3) n`,
  `insert into telemetry_hours (team_id, hour, service, operation, provider, model, agent, bucket, calls, errors, input, output)
    select t.id, date_trunc('hour', now(), 'UTC') - h * interval '1 hour', 'service ' || s, 'chat', 'openai', 'model-' || m, 'agent',
      b, 9, 1, 900, 90
    from teams t, generate_series(0, 719) h, generate_series(1, 3) s, generate_series(1, 3) m, generate_series(3, 6) b`,
  `insert into agent_chat_sessions (id, team_id, workflow_id, owner_kind, owner_id, title, untitled, message_count,
      last_message_at, active_at, created_at)
    select md5('session ' || id)::uuid, team_id, workflow_id, 'USER', md5('person ' || h % 500)::uuid,
      'Order ' || h || ' of ' || (input_data->>'customer'), false, 10, created_at, created_at, created_at
    from executions, lateral (select abs(hashtext(id::text)) as h) r where h % 50 = 9`,
  `insert into agent_chat_messages (id, session_id, team_id, owner_id, role, status, content, execution_id, created_at)
    select md5(id::text || n)::uuid, id, team_id, owner_id, case when n % 2 = 1 then 'user' else 'assistant' end, 'COMPLETE',
      'Where is my order ' || title || '? ' || repeat(md5(id::text || n), 6), md5('turn ' || id || n / 2)::uuid,
      created_at + n * interval '1 second'
    from agent_chat_sessions, generate_series(1, 10) n`,
  `insert into sentiment_scores (message_id, team_id, workflow_id, execution_id, said_at, score)
    select m.id, m.team_id, s.workflow_id, m.execution_id, m.created_at, hashtext(m.id::text) % 100 / 100.0
    from agent_chat_messages m join agent_chat_sessions s on s.id = m.session_id where m.role = 'user'`,
]
