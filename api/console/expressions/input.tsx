import { lazy, Suspense, useState } from 'react'
import { useControl } from '../kit/controls/field.tsx'
import { Icon } from '../kit/controls/icon.tsx'
import { useForm } from '../nodeform/scope.ts'
import '../nodeform/nodeform.css'
import type { ExpressionProps } from './editor.tsx'
import { type Reading, useEvaluation } from './evaluate.ts'

const Editor = lazy(async () => ({ default: (await import('./editor.tsx')).ExpressionEditor }))

/** A text with expressions, and under it what they gave in the last run, as one types. */
export function ExpressionInput(props: ExpressionProps) {
  const { value, mode = 'template', as = 'value', language } = props
  const { id, 'aria-describedby': describedBy, 'aria-invalid': invalid } = useControl()
  const { place, node, readOnly } = useForm()
  const [focused, setFocused] = useState(false)
  // A program is tried by running the node.
  const reads =
    language === 'javascript' || node.id === ''
      ? false
      : mode === 'whole'
        ? value.trim() !== ''
        : value.includes('{{') || value.startsWith('=')
  // Each evaluation is a request: only the field with the focus is read.
  const reading = useEvaluation({ expression: value, as, place, node, enabled: focused && reads })
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: it only notes that the editor in it has the focus
    <div className="expression" onFocus={() => setFocused(true)}>
      <Suspense fallback={<pre className="input code">{value}</pre>}>
        <Editor
          {...props}
          mode={mode}
          readOnly={readOnly}
          problem={reading?.error ? reading : null}
          invalid={invalid ?? false}
          {...(id ? { id } : {})}
          {...(describedBy ? { describedBy } : {})}
        />
      </Suspense>
      {focused && reads && <Result reading={reading} hasRun={place !== undefined} />}
    </div>
  )
}

const SHOWN = 400

function Result({ reading, hasRun }: { reading: Reading | null; hasRun: boolean }) {
  if (!hasRun) return <p className="read quiet">Run the workflow once to see its value here.</p>
  if (!reading) return <p className="read quiet">Reading…</p>
  const text = JSON.stringify(reading.value, null, 1)?.replaceAll(/\n\s*/g, ' ') ?? 'null'
  return (
    <div className="read" role="status">
      {reading.error ? (
        <p className="read-error">
          <Icon name="info" size={13} /> {reading.error.message}
        </p>
      ) : (
        <p className="read-value">
          <span className="quiet">= </span>
          <code title={text.slice(0, 4_000)}>{text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text}</code>
          {reading.note && <span className="quiet"> {reading.note}</span>}
        </p>
      )}
      {reading.warnings.map((warning) => (
        <p key={warning} className="read-warning">
          <Icon name="warning" size={13} /> Nothing is read here: {warning}
        </p>
      ))}
    </div>
  )
}
