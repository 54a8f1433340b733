import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';

interface Props {
  readonly title: string;
  readonly children: ComponentChildren;
  /** It has closed, by Escape or by a form of the method dialog in it. */
  readonly onClose: () => void;
}

/** The browser's own: it keeps the focus inside, and gives it back. */
export function Dialog({ title, children, onClose }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} aria-labelledby={id} onClose={onClose}>
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}

interface ConfirmProps {
  readonly title: string;
  readonly children: ComponentChildren;
  readonly keep: string;
  readonly go: string;
  readonly onGo: () => void;
  readonly onClose: () => void;
}

/** Asks before something is done that cannot be undone. The focus is on what does nothing. */
export function Confirm({ title, children, keep, go, onGo, onClose }: ConfirmProps) {
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      <form method="dialog" class="choices">
        <button class="plain" autofocus>
          {keep}
        </button>
        <button class="danger" onClick={onGo}>
          {go}
        </button>
      </form>
    </Dialog>
  );
}
