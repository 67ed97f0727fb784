import { useState } from 'react'
import { Link } from 'wouter'
import { addressOf, askRaw } from '../data/client.ts'
import { nameOf } from '../graph/lines.ts'
import { Code } from '../kit/code/code.tsx'
import { Button } from '../kit/controls/button.tsx'
import { CopyButton } from '../kit/controls/copy.tsx'
import { Field } from '../kit/controls/field.tsx'
import { Refused } from '../kit/states.tsx'
import { Pill } from '../kit/status.tsx'
import { useWork } from '../kit/work.ts'
import { useRole } from '../shell/role.tsx'
import type { Workflow } from './data.ts'
import { findHooks, type Hook, useLastCall, writeHookCurl } from './hooks.ts'

/** Where a workflow is called from outside, with what to copy, and a call to try it. */
export function Addresses({ workflow }: { workflow: Workflow }) {
  const may = useRole(workflow.teamId)
  const hooks = findHooks(workflow)
  const chats = workflow.nodes.some((node) => node.type === 'CHAT_TRIGGER' && !node.disabled)
  const forms = workflow.nodes.filter((node) => node.type === 'FORM_TRIGGER' && !node.disabled)
  const tools = workflow.nodes.filter((node) => node.type === 'MCP_TRIGGER' && !node.disabled)
  if (hooks.length + forms.length + tools.length === 0 && !chats) return null
  return (
    <section className="workflow-part">
      <h2>Addresses</h2>
      <div className="stack">
        {hooks.map((hook) => (
          <Address key={hook.node.id} hook={hook} active={workflow.active} tries={may('OPERATOR')} />
        ))}
        {forms.map((node) => (
          <PageAddress key={node.id} workflow={workflow} node={node} />
        ))}
        {chats && <ChatAddress workflow={workflow} />}
        {tools.length > 0 && <ToolAddress workflow={workflow} tools={tools} />}
      </div>
    </section>
  )
}

type Answer = { status: number; text: string; executionId: string | undefined }

function Address({ hook, active, tries }: { hook: Hook; active: boolean; tries: boolean }) {
  const [open, setOpen] = useState(false)
  const curl = writeHookCurl(hook)
  return (
    <div className="panel workflow-address">
      <div className="row">
        <Pill tone="busy">{hook.method}</Pill>
        <strong>{nameOf(hook.node)}</strong>
        {hook.guards.map((guard) => (
          <span key={guard} className="quiet">
            {guard}
          </span>
        ))}
        {!active && <Pill tone="warn">Answers once the workflow is active</Pill>}
      </div>
      <Copied label="the address" text={hook.url} />
      <Copied label="the curl command" text={curl} />
      {tries && active && (
        <div>
          <Button small icon="play" aria-expanded={open} onClick={() => setOpen(!open)}>
            Send a call now
          </Button>
          {open && <Try hook={hook} />}
        </div>
      )}
    </div>
  )
}

/** Begins with what the last call had, so that a workflow which expects more than anything works at once. */
function Try({ hook }: { hook: Hook }) {
  const last = useLastCall(hook)
  const [typed, setBody] = useState<string>()
  const body = typed ?? last.data ?? hook.example
  const { busy, result: answer, error, run } = useWork<Answer>()
  const send = () =>
    run(async () => {
      const json: unknown = hook.sendsBody ? JSON.parse(body || '{}') : undefined
      return readAnswer(await askRaw(hook.method, hook.path, json))
    })
  return (
    <div className="stack try">
      {hook.sendsBody && (
        <Field label="Body">
          <Code value={body} onChange={setBody} language="json" lines={8} onSubmit={send} />
        </Field>
      )}
      <div className="row">
        <Button look="primary" small busy={busy} onClick={send}>
          Send
        </Button>
        {hook.guards.length > 0 && (
          <span className="quiet">A call from here has no secret, so it shows that it is refused.</span>
        )}
      </div>
      <Refused error={error} />
      {answer && (
        <div role="status" className="stack">
          <p className="row">
            <Pill tone="good">{answer.status}</Pill>
            {answer.executionId ? (
              <Link className="linked" href={`/executions/${answer.executionId}`}>
                Open the execution
              </Link>
            ) : (
              'The workflow has answered.'
            )}
          </p>
          <pre className="code answer">{answer.text}</pre>
        </div>
      )}
    </div>
  )
}

async function readAnswer(response: Response): Promise<Answer> {
  const text = await response.text()
  let executionId: string | undefined
  try {
    const parsed: unknown = JSON.parse(text)
    const { executionId: id } = Object(parsed) as { executionId?: unknown }
    if (typeof id === 'string') executionId = id
  } catch {
    // An answer of a workflow may be anything.
  }
  return { status: response.status, text: text.slice(0, 20_000), executionId }
}

function PageAddress({ workflow, node }: { workflow: Workflow; node: Workflow['nodes'][number] }) {
  const { path, access } = node.config as { path: string; access?: string }
  const url = addressOf(`/forms/${workflow.id}/${encodeURIComponent(path)}`)
  return (
    <div className="panel workflow-address">
      <div className="row">
        <Pill tone="busy">FORM</Pill>
        <strong>{nameOf(node)}</strong>
        {access === 'password' && <span className="quiet">asks for a password</span>}
        {access === 'members' && <span className="quiet">for members of the team</span>}
        {workflow.active ? (
          <a className="linked" href={url} target="_blank" rel="noopener noreferrer">
            Open the page
          </a>
        ) : (
          <Pill tone="warn">Is there once the workflow is active</Pill>
        )}
      </div>
      <Copied label="the address" text={url} />
    </div>
  )
}

function ChatAddress({ workflow }: { workflow: Workflow }) {
  const sessions = addressOf('/api/agent-chat/sessions')
  const json = JSON.stringify({ teamId: workflow.teamId, workflowId: workflow.id })
  const curl = `curl -sS -X POST ${sessions} -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d '${json}'`
  return (
    <div className="panel workflow-address">
      <div className="row">
        <Pill tone="busy">CHAT</Pill>
        <strong>Chat over the API</strong>
        <span className="quiet">with an SDK token; then POST {'{"content"}'} to …/sessions/:id/messages</span>
        {!workflow.active && <Pill tone="warn">Answers once the workflow is active</Pill>}
      </div>
      <Copied label="the address" text={sessions} />
      <Copied label="the curl command" text={curl} />
    </div>
  )
}

/** All tools have one address: the client's token says of which team they are. */
function ToolAddress({ workflow, tools }: { workflow: Workflow; tools: Workflow['nodes'] }) {
  const address = addressOf('/api/mcp')
  const names = tools.map(({ config }) => String((config as { name?: unknown }).name))
  const json = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
  const curl =
    `curl -sS ${address} -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' ` +
    `-H 'Accept: application/json, text/event-stream' -d '${json}'`
  return (
    <div className="panel workflow-address">
      <div className="row">
        <Pill tone="busy">MCP</Pill>
        <strong>{names.join(', ')}</strong>
        <span className="quiet">for MCP clients, with an SDK token of the role OPERATOR or a higher one</span>
        {!workflow.active && <Pill tone="warn">Answers once the workflow is active</Pill>}
      </div>
      <Copied label="the address" text={address} />
      <Copied label="the curl command" text={curl} />
    </div>
  )
}

function Copied({ label, text }: { label: string; text: string }) {
  return (
    <div className="copied">
      <code>{text}</code>
      <CopyButton text={text} label={`Copy ${label}`} />
    </div>
  )
}
