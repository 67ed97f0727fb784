import { useState } from 'react'
import { addressOf } from '../../data/client.ts'
import { tellError } from '../../data/refusal.ts'
import { Button } from '../../kit/controls/button.tsx'
import { CopyButton } from '../../kit/controls/copy.tsx'
import { Field } from '../../kit/controls/field.tsx'
import { TextArea, TextInput } from '../../kit/controls/input.tsx'
import { isRecord } from '../schema.ts'
import { useForm } from '../scope.ts'

type Answer = { status: number; text: string; took: number }

const EXAMPLE = '{\n  "order": 17\n}'
const SHOWN = 20_000

/** Where a webhook is called, with a line for the shell, and a call to try it. */
export function WebhookAddress() {
  const { node, workflowId } = useForm()
  const { path, method = 'POST', secretHeader, signature } = node.config
  const header = isRecord(secretHeader) && typeof secretHeader.name === 'string' ? secretHeader.name : ''
  const [body, setBody] = useState(EXAMPLE)
  const [secret, setSecret] = useState('')
  const [busy, setBusy] = useState(false)
  const [answer, setAnswer] = useState<Answer | string | null>(null)
  if (!workflowId) return <p className="quiet">Save the workflow: then its address stands here.</p>
  if (typeof path !== 'string' || path === '')
    return <p className="quiet">Give it a path: then its address stands here.</p>
  const url = addressOf(`/hooks/${workflowId}/${path}`)
  const takesBody = method !== 'GET' && method !== 'HEAD'
  const quoted = body.replaceAll("'", "'\\''")
  const curl = [
    `curl -X ${method} ${url}`,
    ...(header ? [`-H '${header}: …'`] : []),
    ...(takesBody
      ? ["-H 'Content-Type: application/json'", `-d '${quoted.replaceAll(/\s*\n\s*/g, ' ')}'`]
      : []),
  ].join(' ')
  const send = async () => {
    setBusy(true)
    setAnswer(null)
    const began = performance.now()
    try {
      const headers = {
        ...(takesBody ? { 'Content-Type': 'application/json' } : {}),
        ...(header && secret ? { [header]: secret } : {}),
      }
      // As another caller would call it: without the session of this page.
      const init = { method: String(method), credentials: 'omit', cache: 'no-store', headers } as const
      const got = await fetch(url, takesBody ? { ...init, body } : init)
      const text = await got.text()
      setAnswer({ status: got.status, text: indent(text), took: Math.round(performance.now() - began) })
    } catch (error) {
      setAnswer(tellError(error))
    } finally {
      setBusy(false)
    }
  }
  return (
    <section className="address" aria-label="Address">
      <div className="address-line">
        <code className="method">{String(method)}</code>
        <code className="url">{url}</code>
        <CopyButton text={url} label="Copy the address" />
      </div>
      <div className="address-line">
        <code className="url">{curl}</code>
        <CopyButton text={curl} label="Copy the curl line" />
      </div>
      <p className="help quiet">
        It takes calls while the workflow is active, by the version that was saved last.
      </p>
      <details>
        <summary>Send a call now</summary>
        <div className="fields">
          {header !== '' && (
            <Field label={header}>
              <TextInput type="password" autoComplete="new-password" value={secret} onChange={setSecret} />
            </Field>
          )}
          {takesBody && (
            <Field label="Body">
              <TextArea code rows={4} value={body} onChange={setBody} />
            </Field>
          )}
          {isRecord(signature) && (
            <p className="quiet">
              Calls must be signed: this one is not, so it shows how one without a signature is refused.
            </p>
          )}
          <div>
            <Button small look="primary" icon="play" busy={busy} onClick={() => void send()}>
              Send
            </Button>
          </div>
          {answer !== null && <Shown answer={answer} />}
        </div>
      </details>
    </section>
  )
}

function Shown({ answer }: { answer: Answer | string }) {
  if (typeof answer === 'string') return <p role="alert">{answer}</p>
  const { status, text, took } = answer
  return (
    <div role="status" className={status < 400 ? 'answer' : 'answer bad'}>
      <p>
        <strong>{status}</strong> <span className="quiet">after {took} ms</span>
      </p>
      <pre>{text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text || '(empty)'}</pre>
    </div>
  )
}

function indent(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
