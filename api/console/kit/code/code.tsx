import { lazy, Suspense } from 'react'
import { useControl } from '../controls/field.tsx'

export type CodeProps = {
  value: string
  onChange?: (value: string) => void
  language?: 'json' | 'javascript' | 'text'
  /** Names it where there is no Field around it. */
  label?: string
  readOnly?: boolean
  /** Ctrl+Enter. */
  onSubmit?: () => void
  /** How high it grows before it scrolls, in lines. */
  lines?: number
  /** More of CodeMirror, such as completions: only in chunks that load it anyway. Keep the same array. */
  extensions?: readonly unknown[]
}

const Editor = lazy(async () => ({ default: (await import('./codemirror.tsx')).CodeMirror }))

/** An editor for JSON (faults are marked), JavaScript or text; loaded when it is first needed. */
export function Code(props: CodeProps) {
  const { id, 'aria-describedby': describedBy } = useControl()
  return (
    <Suspense fallback={<pre className="input code">{props.value}</pre>}>
      <Editor {...props} {...(id ? { id } : {})} {...(describedBy ? { describedBy } : {})} />
    </Suspense>
  )
}
