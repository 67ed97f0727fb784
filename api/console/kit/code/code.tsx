import { lazy, Suspense } from 'react'
import { useControl } from '../controls/field.tsx'
import type { CodeProps } from './codemirror.tsx'

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
