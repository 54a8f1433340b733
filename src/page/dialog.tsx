import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';

interface Props {
  readonly title: string;
  readonly children: ComponentChildren;
  /** Also by Escape. */
  readonly onClose: () => void;
}

/** The browser's own: it keeps the focus inside, and gives it back. */
export function Dialog({ title, children, onClose }: Props) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const opener = document.activeElement;
    dialog.current?.showModal();
    return () => {
      if (opener instanceof HTMLElement) opener.focus();
    };
  }, []);
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
      <div class="choices">
        <button type="button" class="plain" onClick={onClose} autofocus>
          {keep}
        </button>
        <button
          type="button"
          class="danger"
          onClick={() => {
            onGo();
            onClose();
          }}
        >
          {go}
        </button>
      </div>
    </Dialog>
  );
}
