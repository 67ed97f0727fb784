import { useEffect, useState } from 'react'
import { queries, session } from '../data/client.ts'
import { Button } from '../kit/controls/button.tsx'
import { Dialog } from '../kit/overlays/dialog.tsx'
import { Loading, Refused } from '../kit/states.tsx'
import { readMe, type User, useMe } from './data.ts'
import { Frame } from './frame.tsx'
import { SignIn, SignInForm } from './signin.tsx'

/** Shows the sign-in without a session, else the frame. A session that ends keeps the page, and asks to sign in again. */
export function Session() {
  const { data: user, error, refetch } = useMe()
  const [ended, setEnded] = useState(false)
  useEffect(() => {
    session.onEnd = () => setEnded(true)
    session.onForbidden = () => void queries.invalidateQueries({ queryKey: ['me'] })
  }, [])
  const enter = async (next: User | null) => {
    // Data that was read for another user is not for this one.
    if (user && next?.id !== user.id) queries.clear()
    queries.setQueryData(['me'], next)
    setEnded(false)
    if (user) await queries.invalidateQueries()
  }
  if (user === undefined) {
    if (!error) return <Loading />
    return (
      <main className="alone">
        <Refused error={error} />
        <Button onClick={() => void refetch()}>Try again</Button>
      </main>
    )
  }
  if (user === null) return <SignIn onDone={enter} />
  const leave = () => {
    queries.setQueryData(['me'], null)
    setEnded(false)
  }
  return (
    <>
      <Frame user={user} onLeave={leave} />
      <Dialog open={ended} onClose={() => void readMe().then(enter)} title="Your session has ended">
        <p className="quiet">Sign in again: the page stays as it is.</p>
        <SignInForm email={user.email} onDone={enter} />
      </Dialog>
    </>
  )
}
