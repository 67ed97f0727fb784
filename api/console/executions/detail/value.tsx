import { useState } from 'react'
import { Button } from '../../kit/button.tsx'
import { JsonTree } from '../../kit/jsontree.tsx'
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
    <section className="detail-value" aria-label={label}>
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
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reached by keyboard */}
          <pre className="raw" tabIndex={0} aria-label={`${label} as text`}>
            {text.slice(0, SHOWN)}
          </pre>
          {rest > 0 && (
            <p className="quiet">{rest.toLocaleString()} more characters; what is saved has all of them.</p>
          )}
        </>
      ) : (
        <JsonTree label={label} value={value} {...(root ? { root } : {})} draggable />
      )}
    </section>
  )
}
