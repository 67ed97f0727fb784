import type { ReactNode } from 'react'
import { problemsOf } from '../data/refusal.ts'
import { Button } from '../kit/controls/button.tsx'
import { notify } from '../kit/notices.tsx'
import { Refused } from '../kit/states.tsx'
import { useSend } from '../kit/work.ts'

type FormProps = {
  title: string
  help?: ReactNode
  /** What the button says. */
  label: string
  /** The notice after it is done. */
  done: string
  fields: string[]
  onSubmit: () => Promise<unknown>
  /** Shown beside the button. */
  beside?: ReactNode
  children: (error: unknown) => ReactNode
}

/** A form within a page: one thing that is set, sent by its own button. */
export function SettingsForm({ title, help, label, done, fields, onSubmit, beside, children }: FormProps) {
  const {
    error,
    busy,
    onSubmit: send,
  } = useSend(async () => {
    await onSubmit()
    notify(done)
  })
  const problems = problemsOf(error)
  const inField = problems.length > 0 && problems.every(({ path }) => fields.includes(path))
  return (
    <form className="panel stack" aria-label={title} onSubmit={send}>
      <h2>{title}</h2>
      {help && <p className="quiet">{help}</p>}
      {children(error)}
      {!inField && <Refused error={error} except={fields} />}
      <div className="row">
        <Button type="submit" look="primary" busy={busy}>
          {label}
        </Button>
        {beside}
      </div>
    </form>
  )
}
