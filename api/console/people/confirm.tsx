import { go, useQueryState } from '../kit/address.ts'
import { Button } from '../kit/controls/button.tsx'
import { PageHeader } from '../kit/header.tsx'
import { notify } from '../kit/notices.tsx'
import { Refused } from '../kit/states.tsx'
import { useWork } from '../kit/work.ts'
import { confirmEmail, resendConfirmation } from '../shell/data.ts'
import { useTeam } from '../shell/role.tsx'

/**
 * Where the link in a mail leads. Opening it confirms nothing, because programs that scan mail open links too: a click
 * does.
 */
export function ConfirmPage() {
  const { user } = useTeam()
  const [{ token }] = useQueryState({ token: '' })
  const { busy, error, run } = useWork()
  const wanted = user.pendingEmail ?? user.email
  if (user.emailConfirmed && user.pendingEmail === null) {
    return <PageHeader title="Your e-mail" lead={`${user.email} is confirmed.`} />
  }
  const send = async () => {
    if (token === '') return notify((await resendConfirmation()).message)
    const account = await confirmEmail(token)
    notify(`${account.email} is confirmed`)
    // The token is used: it need not stay in the browser's history.
    go('/confirm', { replace: true })
  }
  const ask = `Is ${wanted} your e-mail?`
  const explain = `${wanted} is not confirmed yet: open the link that was mailed to it.`
  return (
    <>
      <PageHeader title="Your e-mail" lead={token === '' ? explain : ask} />
      <Refused error={error} />
      <Button look="primary" busy={busy} onClick={() => run(send)}>
        {token === '' ? 'Send the link again' : 'Confirm'}
      </Button>
    </>
  )
}
