import { useState } from 'react'
import { problemAt } from '../data/refusal.ts'
import { Button } from '../kit/controls/button.tsx'
import { Field } from '../kit/controls/field.tsx'
import { TextInput } from '../kit/controls/input.tsx'
import { notify, notifyError } from '../kit/notices.tsx'
import { resendConfirmation } from '../shell/data.ts'
import { useTeam } from '../shell/role.tsx'
import { changePassword, updateAccount } from './data.ts'
import { SettingsForm } from './form.tsx'

/** One's own name, e-mail and password. */
export function AccountSettings() {
  return (
    <div className="settings">
      <Name />
      <Email />
      <Password />
    </div>
  )
}

function Name() {
  const { user } = useTeam()
  const [firstName, setFirst] = useState(user.firstName)
  const [lastName, setLast] = useState(user.lastName)
  return (
    <SettingsForm
      title="Your name"
      label="Save name"
      done="Name saved"
      fields={['firstName', 'lastName']}
      onSubmit={() => updateAccount({ firstName, lastName })}
    >
      {(error) => (
        <div className="row">
          <Field label="First name" required error={problemAt(error, 'firstName')}>
            <TextInput value={firstName} maxLength={100} autoComplete="given-name" onChange={setFirst} />
          </Field>
          <Field label="Last name" required error={problemAt(error, 'lastName')}>
            <TextInput value={lastName} maxLength={100} autoComplete="family-name" onChange={setLast} />
          </Field>
        </div>
      )}
    </SettingsForm>
  )
}

function Email() {
  const { user } = useTeam()
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const send = async () => {
    await updateAccount({ email, currentPassword: password })
    setEmail('')
    setPassword('')
  }
  const resend = () => resendConfirmation().then(({ message }) => notify(message), notifyError)
  const withdraw = () =>
    updateAccount({ pendingEmail: null }).then(() => notify('The e-mail stays as it is'), notifyError)
  return (
    <SettingsForm
      title="Your e-mail"
      help={
        user.pendingEmail ? (
          <>
            It is {user.email}, and becomes <strong>{user.pendingEmail}</strong> once that is confirmed.
          </>
        ) : (
          `It is ${user.email}${user.emailConfirmed ? '' : ', which is not confirmed yet'}.`
        )
      }
      label="Change e-mail"
      done="The new e-mail counts once it is confirmed"
      fields={['email', 'currentPassword']}
      onSubmit={send}
      beside={
        <>
          {(user.pendingEmail || !user.emailConfirmed) && (
            <Button onClick={() => void resend()}>Send the link again</Button>
          )}
          {user.pendingEmail && <Button onClick={() => void withdraw()}>Keep the old one</Button>}
        </>
      }
    >
      {(error) => (
        <div className="row">
          <Field label="New e-mail" required error={problemAt(error, 'email')}>
            <TextInput type="email" value={email} maxLength={320} autoComplete="email" onChange={setEmail} />
          </Field>
          <Field label="Your password" required error={problemAt(error, 'currentPassword')}>
            <TextInput
              type="password"
              value={password}
              autoComplete="current-password"
              onChange={setPassword}
            />
          </Field>
        </div>
      )}
    </SettingsForm>
  )
}

function Password() {
  const [currentPassword, setCurrent] = useState('')
  const [newPassword, setNew] = useState('')
  const send = async () => {
    await changePassword({ currentPassword, newPassword })
    setCurrent('')
    setNew('')
  }
  return (
    <SettingsForm
      title="Your password"
      help="All your other sessions end with a change."
      label="Change password"
      done="Password changed"
      fields={['currentPassword', 'newPassword']}
      onSubmit={send}
    >
      {(error) => (
        <div className="row">
          <Field label="Old password" required error={problemAt(error, 'currentPassword')}>
            <TextInput
              type="password"
              value={currentPassword}
              autoComplete="current-password"
              onChange={setCurrent}
            />
          </Field>
          <Field
            label="New password"
            required
            help="At least 12 characters"
            error={problemAt(error, 'newPassword')}
          >
            <TextInput type="password" value={newPassword} autoComplete="new-password" onChange={setNew} />
          </Field>
        </div>
      )}
    </SettingsForm>
  )
}
