import { useState } from 'react'
import { JsonTree } from '../../kit/code/jsontree.tsx'
import { Button } from '../../kit/controls/button.tsx'
import { saveText } from './save.ts'

const SHOWN = 100_000

/** A value as a tree or as its text, to be copied and saved. */
export function Value({
  label,
  value,
  root,
  file,
}: {
  label: string
  value: unknown
  root?: string
  file: string
}) {
  const [raw, setRaw] = useState(false)
  const text = raw ? (JSON.stringify(value, null, 2) ?? '') : ''
  const rest = text.length - SHOWN
  return (
    <div className="detail-value">
      <div className="detail-acts">
        <Button small look="plain" aria-pressed={raw} onClick={() => setRaw(!raw)}>
          {raw ? 'Tree' : 'Raw'}
        </Button>
        <Button
          small
          look="plain"
          icon="download"
          aria-label={`Save ${label}`}
          onClick={() => saveText(`${file}.json`, JSON.stringify(value, null, 2) ?? '')}
        />
      </div>
      {raw ? (
        <>
          <div className="json-header">
            <strong>{label}</strong>
          </div>
          <Raw label={`${label} as text`} text={text.slice(0, SHOWN)} />
          {rest > 0 && (
            <p className="quiet">{rest.toLocaleString()} more characters; what is saved has all of them.</p>
          )}
        </>
      ) : (
        <JsonTree label={label} value={value} {...(root ? { root } : {})} draggable />
      )}
    </div>
  )
}

/** A text as it is, in a box of its own that scrolls. */
export function Raw({ label, text }: { label: string; text: string }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard
    <section className="raw" tabIndex={0} aria-label={label}>
      <pre>{text}</pre>
    </section>
  )
}
