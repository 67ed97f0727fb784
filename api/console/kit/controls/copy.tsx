import { useState } from 'react'
import { notify } from '../notices.tsx'
import { Button } from './button.tsx'

/** Copies a text and says so. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    notify('Copied')
    return true
  } catch {
    // Browsers give the clipboard to secure origins only.
    notify('This browser does not allow copying here; select the text instead', 'bad')
    return false
  }
}

/** A button that copies; `label` says what, for those who do not see the text beside it. */
export function CopyButton({
  text,
  label = 'Copy',
  named,
}: {
  text: string | (() => string)
  label?: string
  named?: boolean
}) {
  const [done, setDone] = useState(false)
  const copy = async () => {
    if (!(await copyText(typeof text === 'string' ? text : text()))) return
    setDone(true)
    setTimeout(() => setDone(false), 1_500)
  }
  return (
    <Button small look="plain" icon={done ? 'check' : 'copy'} aria-label={label} onClick={() => void copy()}>
      {named ? label : undefined}
    </Button>
  )
}
