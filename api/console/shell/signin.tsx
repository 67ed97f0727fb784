import { useEffect, useRef, useState } from 'react'
import icon from '../icon.svg'
import { useQueryState } from '../kit/address.ts'
import { Button } from '../kit/controls/button.tsx'
import { Field } from '../kit/controls/field.tsx'
import { TextInput } from '../kit/controls/input.tsx'
import { Refused } from '../kit/states.tsx'
import { useSend } from '../kit/work.ts'
import { signIn, type User } from './data.ts'
import './frame.css'

type FormProps = { email?: string; onDone: (user: User | null) => Promise<void> }

/** The page of those who are not signed in. */
export function SignIn({ onDone }: FormProps) {
  useEffect(() => {
    document.title = 'Sign in · Perdure'
  }, [])
  return (
    <main className="sign-in">
      <div className="sign-in-card">
        <img src={icon} alt="" width={40} height={40} />
        <h1 tabIndex={-1}>Sign in to Perdure</h1>
        <SignInForm onDone={onDone} />
      </div>
    </main>
  )
}

export function SignInForm({ email: known = '', onDone }: FormProps) {
  const [email, setEmail] = useState(known)
  // The link in the mail of a new account leads here.
  const [{ token }] = useQueryState({ token: '' })
  const [password, setPassword] = useState('')
  const form = useRef<HTMLFormElement>(null)
  useEffect(() => {
    form.current?.querySelector<HTMLInputElement>(known ? '[type=password]' : '[type=email]')?.focus()
  }, [known])
  const { error, busy, onSubmit } = useSend(async () => onDone(await signIn(email, password, token)), {
    onError: () => form.current?.querySelector<HTMLInputElement>('[type=password]')?.select(),
  })
  return (
    <form className="stack" ref={form} onSubmit={onSubmit}>
      <Field label="E-mail">
        <TextInput type="email" autoComplete="username" required value={email} onChange={setEmail} />
      </Field>
      <Field label="Password">
        <TextInput
          type="password"
          autoComplete="current-password"
          required
          value={password}
          onChange={setPassword}
        />
      </Field>
      <Refused error={error} />
      <Button type="submit" look="primary" busy={busy}>
        Sign in
      </Button>
    </form>
  )
}
