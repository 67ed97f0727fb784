import { createContext, type ReactNode, useContext, useState } from 'react'
import { FormDialog } from './dialog.tsx'

type Question = {
  title: string
  text?: ReactNode
  /** What the button says: the act, never "OK". */
  label: string
  danger?: boolean
  /** Done while the dialog is open; what is refused is said there. */
  work: () => Promise<unknown>
}

const ConfirmContext = createContext<(question: Question) => void>(() => {})

/** Asks before something is done: `confirm({ title, text, label, danger, work })`. */
export function useConfirm(): (question: Question) => void {
  return useContext(ConfirmContext)
}

/** Holds the one dialog that asks; the shell has it once. */
export function ConfirmProvider({ children }: { children: ReactNode }) {
  const [question, setQuestion] = useState<Question | null>(null)
  const [open, setOpen] = useState(false)
  return (
    <ConfirmContext
      value={(asked) => {
        setQuestion(asked)
        setOpen(true)
      }}
    >
      {children}
      {question && (
        <FormDialog
          open={open}
          onClose={() => setOpen(false)}
          title={question.title}
          label={question.label}
          danger={question.danger ?? false}
          onSubmit={question.work}
        >
          {question.text && <p>{question.text}</p>}
        </FormDialog>
      )}
    </ConfirmContext>
  )
}
