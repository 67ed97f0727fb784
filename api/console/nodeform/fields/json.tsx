import { useEffect, useRef, useState } from 'react'
import { Code } from '../../kit/code/code.tsx'
import { useForm } from '../scope.ts'

const write = (value: unknown) => (value === undefined ? '' : JSON.stringify(value, null, 2))

type JsonProps = {
  value: unknown
  onChange: (value: unknown) => void
  label?: string
  lines?: number
  /** Why a value that parses is not taken. */
  refuse?: (value: unknown) => string | undefined
}

/** A value as JSON. A text that does not parse stays in the editor, and is not taken. */
export function JsonInput({ value, onChange, label, lines = 14, refuse }: JsonProps) {
  const { readOnly } = useForm()
  const [text, setText] = useState(() => write(value))
  const [wrong, setWrong] = useState<string | undefined>()
  const told = useRef(JSON.stringify(value))
  useEffect(() => {
    const now = JSON.stringify(value)
    if (now === told.current) return
    told.current = now
    setText(write(value))
    setWrong(undefined)
  }, [value])
  const change = (next: string) => {
    setText(next)
    if (next.trim() === '') return take(undefined)
    try {
      take(JSON.parse(next))
    } catch {
      setWrong('This is not JSON yet, so it is not taken.')
    }
  }
  const take = (next: unknown) => {
    const why = refuse?.(next)
    setWrong(why)
    if (why !== undefined) return
    told.current = JSON.stringify(next)
    onChange(next)
  }
  return (
    <div>
      <Code value={text} onChange={change} readOnly={readOnly} lines={lines} {...(label ? { label } : {})} />
      {wrong && <p className="wrong json-wrong">{wrong}</p>}
    </div>
  )
}
