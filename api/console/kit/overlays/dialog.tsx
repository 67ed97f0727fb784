import './overlays.css'
import { Dialog as Base } from '@base-ui/react/dialog'
import type { ReactNode } from 'react'
import { problemsOf } from '../../data/refusal.ts'
import { Button } from '../controls/button.tsx'
import { Refused } from '../states.tsx'
import { useSend } from '../work.ts'

type DialogProps = {
  open: boolean
  onClose: () => void
  title: ReactNode
  wide?: boolean
  children: ReactNode
}

/** A modal dialog: Escape, and a click beside it, close it; focus stays in it and goes back after. */
export function Dialog({ open, onClose, title, wide, children }: DialogProps) {
  return (
    <Base.Root open={open} onOpenChange={(next) => !next && onClose()}>
      <Base.Portal>
        <Base.Backdrop className="backdrop" />
        <Base.Popup className={wide ? 'dialog wide' : 'dialog'}>
          <Base.Title>{title}</Base.Title>
          {children}
        </Base.Popup>
      </Base.Portal>
    </Base.Root>
  )
}

type FormDialogProps = Omit<DialogProps, 'children'> & {
  /** What the button that sends says. */
  label: string
  leave?: string
  danger?: boolean
  /** Does the work. The dialog closes when it resolves, and says what was refused when it throws. */
  onSubmit: () => Promise<unknown>
  /** The fields; `problemAt(error, path)` tells a field what is wrong with it. */
  children: ReactNode | ((error: unknown) => ReactNode)
  /** Paths of problems that fields show themselves. */
  fields?: string[]
}

/** A dialog with a form, sent one time at once. */
export function FormDialog({
  label,
  leave = 'Cancel',
  danger,
  onSubmit,
  children,
  fields,
  ...props
}: FormDialogProps) {
  const {
    error,
    busy,
    clear,
    onSubmit: send,
  } = useSend(async () => {
    await onSubmit()
    close()
  })
  const close = () => {
    clear()
    props.onClose()
  }
  const inField =
    problemsOf(error).length > 0 && problemsOf(error).every(({ path }) => fields?.includes(path))
  return (
    <Dialog {...props} onClose={close}>
      <form onSubmit={send}>
        {typeof children === 'function' ? children(error) : children}
        {!inField && <Refused error={error} {...(fields ? { except: fields } : {})} />}
        <div className="actions">
          <Button onClick={close}>{leave}</Button>
          <Button type="submit" look={danger ? 'danger' : 'primary'} busy={busy}>
            {label}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
