import { type SyntheticEvent, useState } from 'react'
import { addressOf, askRaw } from '../../data/client.ts'
import { tellError } from '../../data/refusal.ts'
import { Raw } from './value.tsx'

type FileFacts = { id: string; name: string; mimeType: string; bytes: number }

/** The kinds that a browser shows without running anything. */
const IMAGES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp'])
const TEXT = /^(?:text\/[\w.+-]+|application\/(?:[\w.+-]+\+)?(?:json|xml))(?:;|$)/i
const MAX_TEXT = 64 * 1024
const MAX_IMAGE = 16 * 1024 * 1024

/** How many files are shown, and how many values are looked at to find them. */
const MAX_SHOWN = 20
const MAX_LOOKED = 20_000

/** The files in values, with a way to download each; images are shown, and texts when the user asks for them. */
export function Files({ executionId, values }: { executionId: string; values: unknown[] }) {
  const files = findFiles(values)
  if (files.length === 0) return null
  const more = files.length - MAX_SHOWN
  return (
    <section className="files" aria-label="Files">
      <h3>Files</h3>
      {files.slice(0, MAX_SHOWN).map((file) => (
        <OneFile key={file.id} executionId={executionId} file={file} />
      ))}
      {more > 0 && <p className="quiet">{more} more</p>}
    </section>
  )
}

function OneFile({ executionId, file }: { executionId: string; file: FileFacts }) {
  const { id, name, mimeType, bytes } = file
  const path = `/api/executions/${executionId}/files/${encodeURIComponent(id)}`
  const [broken, setBroken] = useState(false)
  return (
    <div className="file">
      <a href={addressOf(path)} download={name}>
        {name}
      </a>
      <span className="quiet">
        {' '}
        {mimeType}, {writeSize(bytes)}
      </span>
      {IMAGES.has(mimeType) &&
        bytes <= MAX_IMAGE &&
        (broken ? (
          <p className="quiet">It cannot be shown.</p>
        ) : (
          <img
            src={addressOf(`${path}?inline=true`)}
            alt={name}
            loading="lazy"
            onError={() => setBroken(true)}
          />
        ))}
      {TEXT.test(mimeType) && bytes <= MAX_TEXT && <FileText path={path} name={name} />}
    </div>
  )
}

function FileText({ path, name }: { path: string; name: string }) {
  const [text, setText] = useState<string | null>(null)
  const [error, setError] = useState<unknown>(null)
  const load = async (event: SyntheticEvent<HTMLDetailsElement>) => {
    if (!event.currentTarget.open || text !== null) return
    try {
      setText(await (await askRaw('GET', path)).text())
    } catch (refused) {
      setError(refused)
    }
  }
  return (
    <details onToggle={(event) => void load(event)}>
      <summary>Show the text</summary>
      {error ? (
        <p className="failure">{tellError(error)}</p>
      ) : (
        <Raw label={`Text of ${name}`} text={text ?? ''} />
      )}
    </details>
  )
}

function findFiles(values: unknown[]): FileFacts[] {
  const found = new Map<string, FileFacts>()
  const open = [...values]
  for (const value of open) {
    if (typeof value !== 'object' || value === null) continue
    const { file } = value as { file?: unknown }
    if (isFile(file)) {
      found.set(file.id, file)
      continue
    }
    for (const child of Object.values(value)) {
      if (open.length >= MAX_LOOKED) break
      open.push(child)
    }
  }
  return [...found.values()]
}

function isFile(value: unknown): value is FileFacts {
  const { id, name, mimeType, bytes } = Object(value) as Record<string, unknown>
  return [id, name, mimeType].every((one) => typeof one === 'string') && typeof bytes === 'number'
}

function writeSize(bytes: number): string {
  if (bytes < 1_024) return `${bytes} bytes`
  const [size, unit] = bytes < 1_024 * 1_024 ? [bytes / 1_024, 'KB'] : [bytes / 1_024 / 1_024, 'MB']
  return `${Number(size.toFixed(1))} ${unit}`
}
